# The service. Built and run: docker build -t tidings . && docker run -p 8080:8080 -v tidings:/data tidings
FROM python:3.12-slim
WORKDIR /app
COPY pyproject.toml README.md LICENSE requirements.lock ./
COPY src ./src
RUN pip install --no-cache-dir --constraint requirements.lock '.[server]' && useradd --create-home tidings && mkdir /data && chown tidings /data
USER tidings
ENV NUMBA_CACHE_DIR=/home/tidings/.cache/numba
VOLUME /data
EXPOSE 8080
HEALTHCHECK CMD python -c "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/readyz')"
ENTRYPOINT ["tidings", "serve", "/data", "--host", "0.0.0.0", "--port", "8080"]
