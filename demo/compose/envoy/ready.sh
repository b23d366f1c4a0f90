#!/usr/bin/env bash
# The health check of Envoy in compose.yaml: asks its readiness listener. The image has no HTTP client, so bash opens the connection.
set -euo pipefail
exec 3<>/dev/tcp/127.0.0.1/8081
printf 'GET /ready HTTP/1.1\r\nHost: pod\r\nConnection: close\r\n\r\n' >&3
read -r _ status _ <&3
[ "$status" = 200 ]
