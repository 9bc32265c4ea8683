// Archives that need no Node on the machine, and the manifest by which krew installs them as `kubectl sluice`.
import { join } from 'node:path'
import { stringify } from 'yaml'
import { root } from './app-tree.mjs'
import { architectures, nodePackage, readNode } from './base-image.mjs'
import { digestOf } from './oci-layout.mjs'
import { entriesOf, gzip, tarOf } from './tar.mjs'

/**
 * Makes an archive for each architecture: the application with the launcher, and Node where it looks for it.
 *
 * @param {string} version
 * @param {{ entries: object[] }} tree the application, below `app/`
 * @returns {Promise<{ name: string, architecture: string, bytes: Buffer }[]>}
 */
export async function packStandalone(version, tree) {
  const folder = `sluice-${version}`
  const inFolder = (entry) => ({ ...entry, name: `${folder}/${entry.name}` })
  const application = tree.entries.map((entry) =>
    inFolder({ ...entry, name: entry.name.replace(/^app\//, '') }),
  )
  const launcher = entriesOf(join(root, 'bin'), 'bin').map(inFolder)
  const archiveOf = async (architecture) => {
    const place = `${folder}/node_modules/${nodePackage(architecture)}`
    const { binary, license } = await readNode(architecture)
    const node = [
      { name: `${place}/bin/node`, type: 'file', mode: 0o755, body: binary },
      { name: `${place}/LICENSE`, type: 'file', mode: 0o644, body: license },
    ]
    return {
      name: `sluice-${version}-linux-${architecture}.tar.gz`,
      architecture,
      bytes: await gzip(await tarOf([...application, ...launcher, ...node])),
    }
  }
  return Promise.all(architectures.map(archiveOf))
}

/** The manifest of the kubectl plugin, as `kubectl krew install --manifest` reads it. */
export function krewManifest({ version, source }, archives) {
  return stringify({
    apiVersion: 'krew.googlecontainertools.github.com/v1alpha2',
    kind: 'Plugin',
    metadata: { name: 'sluice' },
    spec: {
      version: `v${version}`,
      homepage: source,
      shortDescription: 'Check, explain and replay Sluice gateways',
      description:
        'Validates manifests of Sluice and of the Gateway API, explains why an object has its\nconditions, and shows what a change would do.\n',
      platforms: archives.map(({ name, architecture, bytes }) => ({
        selector: { matchLabels: { os: 'linux', arch: architecture } },
        uri: `${source}/releases/download/v${version}/${name}`,
        sha256: digestOf(bytes).replace('sha256:', ''),
        bin: `sluice-${version}/bin/sluice`,
      })),
    },
  })
}
