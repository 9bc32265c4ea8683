// The images of the controller and of the proxy: one file tree, two commands.

import { architectures, nodeLayer, systemLayer, user } from './base-image.mjs'
import { layerOf, OciLayout } from './oci-layout.mjs'
import { registry } from './registry.mjs'
import { provenance, sbomOf, sbomStatement } from './supply-chain.mjs'
import { tarOf } from './tar.mjs'

const shared = {
  User: `${user}:${user}`,
  WorkingDir: '/app',
  Entrypoint: ['node', '/app/dist/main.js'],
}
const env = [
  'PATH=/nodejs/bin',
  'NODE_ENV=production',
  'NODE_NO_WARNINGS=1',
  // What V8's compilers take goes back to the system at once: see bin/sluice.
  'MALLOC_MMAP_THRESHOLD_=32000',
]

/** The images by their repository. */
export const images = {
  controller: {
    title: 'Sluice controller',
    config: { ...shared, Env: env, Cmd: ['controller'], ExposedPorts: portsOf(9978, 9092, 9093) },
  },
  'sluice-proxy': {
    title: 'Sluice proxy',
    config: {
      ...shared,
      Env: env,
      Cmd: ['proxy'],
      ExposedPorts: portsOf(15020, 15021),
    },
  },
}

function portsOf(...ports) {
  return Object.fromEntries(ports.map((port) => [`${port}/tcp`, {}]))
}

/** The layers of an architecture, from the one that changes least, and their packages. */
async function layersOf(architecture, app) {
  const parts = [
    ['Debian packages', await systemLayer(architecture)],
    ['Node', await nodeLayer(architecture)],
  ]
  const base = parts.map(async ([comment, { layer }]) => ({ ...(await layerOf(layer)), comment }))
  return {
    layers: [...(await Promise.all(base)), { ...app.layer, comment: 'Sluice' }],
    components: parts.flatMap(([, { components }]) => components),
  }
}

/**
 * Makes both images for all architectures.
 *
 * @param {{ version: string, revision: string, created: string, source: string }} release
 * @param {{ entries: object[], sbom: object, components: object[] }} tree the application
 * @returns {Promise<{ name: string, digest: string, archive: Buffer }[]>}
 */
export async function buildImages(release, tree) {
  const app = { layer: await layerOf(await tarOf(tree.entries)) }
  const bases = Object.fromEntries(
    await Promise.all(
      architectures.map(async (architecture) => [architecture, await layersOf(architecture, app)]),
    ),
  )
  return Promise.all(
    Object.entries(images).map(([name, image]) => buildImage(name, image, release, bases, tree)),
  )
}

async function buildImage(name, { title, config }, release, bases, tree) {
  const layout = new OciLayout()
  const annotations = {
    'org.opencontainers.image.title': title,
    'org.opencontainers.image.version': release.version,
    'org.opencontainers.image.revision': release.revision,
    'org.opencontainers.image.source': release.source,
    'org.opencontainers.image.licenses': 'Apache-2.0',
    'org.opencontainers.image.created': release.created,
  }
  const labels = { ...config, Labels: annotations }
  const { created } = release
  const manifests = Object.entries(bases).flatMap(([architecture, { layers, components }]) => {
    const manifest = layout.addImage({ architecture, layers, config: labels, created, annotations })
    const subjects = [{ name: `${registry}/${name}:${release.version}`, digest: manifest.digest }]
    const contained = [...components, ...tree.components]
    const sbom = sbomOf(tree.sbom, release, contained, `${name}-${architecture}`)
    const statements = [sbomStatement(sbom, subjects), provenance(release, subjects)]
    return [manifest, layout.addAttestation(manifest, statements)]
  })
  const { digest } = layout.addIndex(release.version, manifests, annotations)
  return { name, digest, archive: await layout.archive() }
}
