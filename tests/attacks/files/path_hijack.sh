# @attack puts a false tool in the way of a later step
# @expect held
mkdir -p /tmp/bin && printf '#!/bin/sh\necho owned\n' > /tmp/bin/python3 && chmod +x /tmp/bin/python3
for target in /usr/bin/python3 /bin/sh /usr/local/bin/python3 /usr/local/bin/g++; do
  if cp /tmp/bin/python3 "$target" 2>/dev/null; then echo "ESCAPED $target"; exit; fi
done
echo held
