// OCI image layouts as archives: content by digest, and an index of the manifests for each platform.
import { createHash } from 'node:crypto'
import { gzip, tarOf } from './tar.mjs'

const types = {
  layout: 'application/vnd.oci.image.layout.v1+json',
  index: 'application/vnd.oci.image.index.v1+json',
  manifest: 'application/vnd.oci.image.manifest.v1+json',
  config: 'application/vnd.oci.image.config.v1+json',
  layer: 'application/vnd.oci.image.layer.v1.tar+gzip',
  statement: 'application/vnd.in-toto+json',
}

export const digestOf = (bytes) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`

/** A layer, compressed once for all images that contain it. */
export async function layerOf(tar) {
  const bytes = await gzip(tar)
  return { bytes, diffId: digestOf(tar) }
}

export class OciLayout {
  #blobs = new Map()
  #references = []

  #add(mediaType, bytes) {
    const digest = digestOf(bytes)
    this.#blobs.set(digest, bytes)
    return { mediaType, digest, size: bytes.length }
  }

  #addJson(mediaType, value) {
    return this.#add(mediaType, Buffer.from(JSON.stringify(value)))
  }

  /**
   * Adds the image of one platform.
   * @returns the descriptor of its manifest
   */
  addImage({ architecture, layers, config, created, annotations }) {
    const configuration = this.#addJson(types.config, {
      created,
      architecture,
      os: 'linux',
      config,
      rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
      history: layers.map(({ comment }) => ({ created, created_by: comment })),
    })
    const manifest = this.#addJson(types.manifest, {
      schemaVersion: 2,
      mediaType: types.manifest,
      config: configuration,
      layers: layers.map(({ bytes }) => this.#add(types.layer, bytes)),
      annotations,
    })
    return { ...manifest, platform: { architecture, os: 'linux' } }
  }

  /** Adds an index of the images of several platforms under a tag. Returns its descriptor. */
  addIndex(tag, manifests, annotations) {
    const index = this.#addJson(types.index, {
      schemaVersion: 2,
      mediaType: types.index,
      manifests,
      annotations,
    })
    return this.#refer(index, tag)
  }

  /** Adds content other than an image, such as a chart, under a tag. Returns its descriptor. */
  addArtifact(tag, { configType, config, layers, annotations }) {
    const manifest = this.#addJson(types.manifest, {
      schemaVersion: 2,
      mediaType: types.manifest,
      config: this.#addJson(configType, config),
      layers: layers.map(({ type, bytes }) => this.#add(type, bytes)),
      annotations,
    })
    return this.#refer(manifest, tag)
  }

  /**
   * Adds statements about the image of a platform, as BuildKit stores them: a manifest of the same index
   * whose layers are in-toto statements.
   * @returns the descriptor for the index
   */
  addAttestation({ digest }, statements) {
    const layers = statements.map((statement) => ({
      ...this.#addJson(types.statement, statement),
      annotations: { 'in-toto.io/predicate-type': statement.predicateType },
    }))
    const platform = { architecture: 'unknown', os: 'unknown' }
    const config = {
      ...platform,
      config: {},
      rootfs: { type: 'layers', diff_ids: layers.map((layer) => layer.digest) },
    }
    const manifest = this.#addJson(types.manifest, {
      schemaVersion: 2,
      mediaType: types.manifest,
      config: this.#addJson(types.config, config),
      layers,
    })
    const annotations = {
      'vnd.docker.reference.type': 'attestation-manifest',
      'vnd.docker.reference.digest': digest,
    }
    return { ...manifest, annotations, platform }
  }

  #refer(descriptor, tag) {
    this.#references.push({
      ...descriptor,
      annotations: { 'org.opencontainers.image.ref.name': tag },
    })
    return descriptor
  }

  /** The archive of the layout. */
  archive() {
    const file = (name, body) => ({ name, type: 'file', mode: 0o644, body: Buffer.from(body) })
    return tarOf([
      file('oci-layout', JSON.stringify({ imageLayoutVersion: '1.0.0' })),
      file(
        'index.json',
        JSON.stringify({ schemaVersion: 2, mediaType: types.index, manifests: this.#references }),
      ),
      ...[...this.#blobs].map(([digest, bytes]) =>
        file(`blobs/${digest.replace(':', '/')}`, bytes),
      ),
    ])
  }
}
