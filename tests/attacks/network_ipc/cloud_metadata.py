# @attack asks the cloud for the machine's credentials
# @expect held
import urllib.request

try:
    print("ESCAPED:", urllib.request.urlopen("http://169.254.169.254/latest/meta-data/", timeout=1).read(100))
except OSError:
    print("held")
