# docker build -t lmdiag .
# docker build -t lmdiag-cuda --build-arg BASE=pytorch/pytorch:2.10.0-cuda12.8-cudnn9-runtime .
# docker run --rm -v "$PWD:/work" lmdiag run --model demo:masked --data demo
# With --gpus all for the second; -v "$HOME/.cache:/cache" keeps models and data between runs.
ARG BASE=python:3.11-slim
FROM ${BASE}
# For the first: the address of PyTorch's index of builds without CUDA, which are gigabytes smaller.
ARG PIP_EXTRA_INDEX_URL
COPY . /src
RUN pip install --no-cache-dir '/src[mixed,words]'
ENV HF_HOME=/cache/huggingface LMDIAG_CACHE=/cache/lmdiag
WORKDIR /work
ENTRYPOINT ["lmdiag"]
CMD ["--help"]
