#!/usr/bin/env bash
# Makes an authority, a certificate of the shop and two of clients in a folder, and the manifests that
# have them. Usage: certificates.sh FOLDER
set -euo pipefail
mkdir -p "$1" && cd "$1"

openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=authority -keyout ca.key -out ca.crt

# issue NAME SUBJECT: a key and a certificate that the authority has signed.
issue() {
  openssl req -newkey rsa:2048 -nodes -subj "/CN=$2" -keyout "$1.key" -out "$1.csr"
  openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 1 -out "$1.crt" \
    -extfile <(echo "subjectAltName = DNS:$2")
}
issue shop shop.example.com
issue ann ann
issue bob bob

indented() { sed 's/^/    /' "$1"; }
cat > certificates.yaml <<END
apiVersion: v1
kind: Secret
metadata:
  name: shop-certificate
type: kubernetes.io/tls
stringData:
  tls.crt: |
$(indented shop.crt)
  tls.key: |
$(indented shop.key)
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: client-authority
data:
  ca.crt: |
$(indented ca.crt)
END
