import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream, linkSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** A tar file of an image's files, and its SHA-256 in hexadecimal digits. */
export interface Layer {
  readonly path: string;
  readonly digest: string;
}

/** What Podman writes by USER, ENTRYPOINT and ENV. */
export interface ImageConfig {
  readonly User: string;
  readonly Entrypoint: readonly string[];
  readonly Env: readonly string[];
  readonly ExposedPorts: Readonly<Record<string, object>>;
}

export async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const part of createReadStream(path)) hash.update(part as Buffer);
  return hash.digest('hex');
}

const architectures: Partial<Record<NodeJS.Architecture, string>> = { x64: 'amd64' };
/** As Go names it, and with it every image. */
const architecture = architectures[process.arch] ?? process.arch;

/** The bytes that name an image: those of its manifest, and of the configuration in it. */
export class Image {
  readonly #layers: readonly Layer[];
  readonly #config: Buffer;
  readonly #manifest: Buffer;

  constructor(config: ImageConfig, layers: readonly Layer[]) {
    this.#layers = layers;
    this.#config = json({
      architecture,
      os: 'linux',
      config,
      rootfs: { type: 'layers', diff_ids: layers.map(({ digest }) => `sha256:${digest}`) },
    });
    this.#manifest = json({
      schemaVersion: 2,
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      config: described('application/vnd.oci.image.config.v1+json', this.#config),
      layers: layers.map(({ path, digest }) => ({
        mediaType: 'application/vnd.oci.image.layer.v1.tar',
        digest: `sha256:${digest}`,
        size: statSync(path).size,
      })),
    });
  }

  /** SHA-256 of the manifest: the same for the same files. */
  get digest(): string {
    return digestOfBytes(this.#manifest);
  }

  /** Writes an OCI archive, of which an import makes an image of this name. The layers must be on the same file system. */
  async write(name: string, archive: string): Promise<void> {
    const layout = `${archive}.layout`;
    rmSync(layout, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    const blobs = join(layout, 'blobs/sha256');
    mkdirSync(blobs, { recursive: true });
    for (const { path, digest } of this.#layers) linkSync(path, join(blobs, digest));
    for (const blob of [this.#config, this.#manifest]) writeFileSync(join(blobs, digestOfBytes(blob)), blob);
    const manifest = {
      ...described('application/vnd.oci.image.manifest.v1+json', this.#manifest),
      annotations: { 'io.containerd.image.name': name },
    };
    writeFileSync(join(layout, 'index.json'), json({ schemaVersion: 2, manifests: [manifest] }));
    writeFileSync(join(layout, 'oci-layout'), json({ imageLayoutVersion: '1.0.0' }));
    await run('tar', ['-C', layout, '-cf', archive, 'oci-layout', 'index.json', 'blobs']);
    rmSync(layout, { recursive: true, maxRetries: 10, retryDelay: 100 });
  }
}

const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
const digestOfBytes = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
const described = (mediaType: string, bytes: Buffer) => ({
  mediaType,
  digest: `sha256:${digestOfBytes(bytes)}`,
  size: bytes.length,
});
