import sys

from course_kernels.lab.cli import main

if __name__ == "__main__":
    sys.exit(main())
