// The charts of a release, as archives for `helm install` and as OCI layouts for registries. A chart
// names its images of the release by their digests.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse, stringify } from 'yaml'
import { root } from './app-tree.mjs'
import { OciLayout } from './oci-layout.mjs'
import { registry } from './registry.mjs'
import { entriesOf, gzip, tarOf } from './tar.mjs'

const types = {
  config: 'application/vnd.cncf.helm.config.v1+json',
  chart: 'application/vnd.cncf.helm.chart.content.v1.tar+gzip',
}

/**
 * @param {string} name the folder of the chart in charts/
 * @param {string} version
 * @param {readonly { name: string, digest: string }[]} images
 * @returns {Promise<{ name: string, bytes: Buffer }[]>} the chart, and its layout
 */
export async function packChart(name, version, images) {
  const folder = join(root, 'charts', name)
  const chart = chartOf(parse(readFileSync(join(folder, 'Chart.yaml'), 'utf8')), version, images)
  const usesImages = chart.annotations?.[imagesAnnotation] !== undefined
  const file = (path, value) => ({
    name: `${name}/${path}`,
    type: 'file',
    mode: 0o644,
    body: Buffer.from(stringify(value)),
  })
  const digests = Object.fromEntries(images.map((image) => [image.name, image.digest]))
  const bytes = await gzip(
    await tarOf([
      ...entriesOf(folder, name),
      file('Chart.yaml', chart),
      ...(usesImages ? [file('files/image-digests.yaml', digests)] : []),
    ]),
  )
  const layout = new OciLayout()
  layout.addArtifact(version, {
    configType: types.config,
    config: chart,
    layers: [{ type: types.chart, bytes }],
    annotations: {
      'org.opencontainers.image.title': chart.name,
      'org.opencontainers.image.version': version,
      'org.opencontainers.image.description': chart.description,
    },
  })
  return [
    { name: `charts/${name}-${version}.tgz`, bytes },
    { name: `charts/${name}-${version}.oci.tar`, bytes: await layout.archive() },
  ]
}

const imagesAnnotation = 'artifacthub.io/images'

function chartOf(chart, version, images) {
  const annotations = { ...chart.annotations }
  annotations['artifacthub.io/prerelease'] = String(
    version.includes('-') || version.startsWith('0.'),
  )
  if (annotations[imagesAnnotation] !== undefined) {
    const named = annotations[imagesAnnotation]
    annotations[imagesAnnotation] = images
      .filter(({ name }) => named.includes(`/${name}:`))
      .map(
        ({ name, digest }) =>
          `- name: ${name}\n  image: ${registry}/${name}:${version}@${digest}\n`,
      )
      .join('')
  }
  return { ...chart, version, appVersion: version, annotations }
}
