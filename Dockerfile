# account-authz on distroless Node: one bundle with all that it imports, nothing else. The demo's image is `--target demo`.
#
# Both bases are pinned by the digest of their multi-platform index. They were taken from public repositories that pin the same
# tags (many of them agree on the first, four on the second), not from the registries themselves: see docs/deploy/compose.md.
ARG BUILD_IMAGE=docker.io/library/node:26.10.0-trixie-slim@sha256:ec7758ee051e457b468b32bde57b0879010b325bb9862718e9615225ce4aaae1
ARG RUNTIME_IMAGE=gcr.io/distroless/nodejs26-debian13:nonroot@sha256:afc6657a4b662f9cb69ca892b0596e55d6ef81a10e83ee8887b13f602877df89

# What is built is JavaScript, the same for every platform: it is built once, on the builder's own. The stage `compiled` runs for each platform.
FROM --platform=$BUILDPLATFORM ${BUILD_IMAGE} AS packages
WORKDIR /app
ENV npm_config_cache=/npm-cache
COPY package.json package-lock.json .npmrc ./

FROM packages AS build
RUN --mount=type=cache,target=/npm-cache npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json ./
COPY tools ./tools
COPY proto ./proto
COPY src ./src
RUN npm run build

# The demo's own: the production ones and oidc-provider, in the versions of the lockfile.
FROM packages AS demo-packages
RUN --mount=type=cache,target=/npm-cache npm pkg set "dependencies.oidc-provider=$(node -p 'require("./package.json").devDependencies["oidc-provider"]')" \
    && npm pkg delete devDependencies \
    && npm install --ignore-scripts --no-audit --no-fund

# The authentication service, the upstream and the client of the demo. Node runs their TypeScript as it is. Not for production.
FROM ${RUNTIME_IMAGE} AS demo
USER 0:0
ARG VERSION=0.0.0-dev
ARG REVISION=unknown
ARG CREATED=1970-01-01T00:00:00Z
ARG SOURCE=unknown
ARG RUNTIME_IMAGE
LABEL org.opencontainers.image.title="account-authz-demo" \
      org.opencontainers.image.description="The demo of account-authz: an authentication service, an upstream and a test client. Not for production." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.base.name="${RUNTIME_IMAGE}"
WORKDIR /app
COPY --from=demo-packages /app/node_modules ./node_modules
COPY package.json LICENSE ./
COPY demo ./demo
ENV NODE_ENV=production
USER 65532:65532
ENTRYPOINT ["/nodejs/bin/node"]
CMD ["demo/serve.ts", "upstream", "--listen", "0.0.0.0:8000", "--health", "0.0.0.0:8001"]

# What V8 compiles of `serve` under the flags of the product, which take a tenth less of a start with it. Node reads it under this version,
# platform, flags, user and path alone, and compiles without a word where any of them differs.
FROM ${RUNTIME_IMAGE} AS compiled
WORKDIR /app
COPY package.json ./
COPY --from=build /app/dist ./dist
ENV NODE_COMPILE_CACHE=/tmp/compile-cache
USER 65532:65532
RUN ["/nodejs/bin/node", "--min-semi-space-size=2", "--max-semi-space-size=8", "--v8-pool-size=1", "--heap-growing-percent=60", "--no-allocation-site-pretenuring", "--no-maglev", "/app/dist/main.js", "serve", "--help"]

# The product. All of it belongs to root: the user that runs it can change nothing.
FROM ${RUNTIME_IMAGE} AS account-authz
USER 0:0
ARG VERSION=0.0.0-dev
ARG REVISION=unknown
ARG CREATED=1970-01-01T00:00:00Z
ARG SOURCE=unknown
ARG RUNTIME_IMAGE
LABEL org.opencontainers.image.title="account-authz" \
      org.opencontainers.image.description="External authorization for Envoy: verifies the bearer token and that its account is the account the request addresses" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.base.name="${RUNTIME_IMAGE}"
WORKDIR /app
COPY package.json LICENSE ./
COPY docs/runbooks.md ./docs/runbooks.md
COPY --from=build /app/dist ./dist
COPY --from=compiled --chown=0:0 --chmod=0755 /tmp/compile-cache ./compile-cache
# MALLOC_ARENA_MAX is of glibc: without it each thread may keep memory of its own, 5 MB in all.
ENV NODE_ENV=production MALLOC_ARENA_MAX=2 NODE_COMPILE_CACHE=/app/compile-cache
USER 65532:65532
EXPOSE 9191 9192
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --retries=3 \
    CMD ["/nodejs/bin/node", "/app/dist/main.js", "health", "--config", "/etc/account-authz/config.yaml"]
# Each flag with what it does to throughput and memory: docs/dev/performance.md. V8 must not allocate what a call needs among the old objects
# (pretenuring), and its young generation holds the calls in flight. Less memory comes without Maglev's code, of one helper thread in the place
# of four, and of a tighter old generation; with the least young generation nothing is collected whole during the start.
ENTRYPOINT ["/nodejs/bin/node", "--min-semi-space-size=2", "--max-semi-space-size=8", "--v8-pool-size=1", "--heap-growing-percent=60", "--no-allocation-site-pretenuring", "--no-maglev", "/app/dist/main.js"]
CMD ["serve", "--config", "/etc/account-authz/config.yaml"]
