#!/bin/sh
# Stands for the program in tests of sweeps: ends as the name of the model's folder says. SIMULATED names a folder of its own, in
# which it notes each capture and whether two of one configuration are made at a time.
for argument; do
  case $argument in
    --model=*) model=${argument#*=} ;;
    --output=*) output=${argument#*=} ;;
  esac
done
name=${model##*/}

if [ -f "$model/config.json" ]; then
  read -r configuration < "$model/config.json"
  configuration=${configuration#*kind-}
  configuration=${configuration%%\"*}
  capture=$SIMULATED/capture-$configuration
  if [ ! -e "$capture" ]; then
    mkdir "$capture.making" 2>/dev/null || echo "$configuration" >> "$SIMULATED/collisions"
    echo '{"stage": "tracing"}' >&2
    sleep 0.05
    echo "$configuration" >> "$SIMULATED/captures"
    case $name in
      uncaptured*)
        rmdir "$capture.making"
        echo '{"error": {"code": "invalid-input", "message": "no capture was made: it branches on data"}}'
        exit 1 ;;
    esac
    : > "$capture"
    rmdir "$capture.making" 2>/dev/null
    echo '{"stage": "done"}' >&2
  fi
fi

case $name in
  failing*)
    echo '{"error": {"code": "unsupported-op", "message": "no translation of aten::nonsense"}}'
    exit 1 ;;
  wrong*)
    echo "argosy: Simulated in onnxruntime is wrong in 1 of 3 calls:" >&2
    echo "  decode edge 1x6" >&2
    exit 3 ;;
  killed*) kill -9 $$ ;;
  flaky*)
    if mkdir "$SIMULATED/$name.tried" 2>/dev/null; then kill -9 $$; fi ;;
  workerless*)  # of a cluster: the process that started this one dies with it
    if mkdir "$SIMULATED/$name.tried" 2>/dev/null; then kill -9 $PPID $$; fi ;;
  sleeping*)
    sleep 60 &
    echo "$! $$" > "$SIMULATED/$name.new" && mv "$SIMULATED/$name.new" "$SIMULATED/$name.processes"
    wait ;;
  hungry*) "$PYTHON" -c 'import time; held = b"x" * (400 << 20); time.sleep(60)' ;;
  writing*)
    mkdir -p "$output"
    if ! dd if=/dev/zero of="$output/model.onnx.data" bs=1M count=64 2>"$SIMULATED/$name.said"; then
      read -r said < "$SIMULATED/$name.said"
      echo "{\"error\": {\"code\": \"io\", \"message\": \"cannot write: ${said##*: }\"}}"
      exit 1
    fi
    sleep 1 ;;
  slow*) sleep 0.1 ;;
esac
mkdir -p "$output"
echo "$name" > "$output/model.onnx"
echo '{"is_verified": true, "model_class": "Simulated"}'
