# An image with the program and the Python package, compiled from this clone:
#   docker build -t argosy . && docker run --rm -v "$PWD:/work" -v argosy:/cache argosy inspect tests/fixtures/trained-decoder
# It has no torch: it exports what `argosy cache import` has brought. Written where there was no container engine, and not built yet.
FROM debian:12 AS build
# What tools/setup takes for granted: Python and a compiler. It pins the rest.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates g++ python3-dev python3-venv && rm -rf /var/lib/apt/lists/*
WORKDIR /argosy
COPY . .
# The two lines of .ci/run: what builds, then the package as a user installs it.
# hadolint ignore=SC1091
RUN python3 -m venv .venv && . .venv/bin/activate && tools/setup
RUN python3 -m venv build/package && build/package/bin/pip install --quiet .

FROM debian:12-slim
# The libraries that the program is linked with.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends libfmt9 libsimdjson14 libsodium23 python3 zlib1g && rm -rf /var/lib/apt/lists/*
COPY --from=build /argosy/build/package /argosy/build/package
RUN /argosy/build/package/bin/argosy doctor
ENV PATH=/argosy/build/package/bin:$PATH ARGOSY_CACHE=/cache
VOLUME /cache
WORKDIR /work
ENTRYPOINT ["argosy"]
