// What a release says about itself: an SBOM (CycloneDX), and provenance (an in-toto statement with the
// SLSA predicate). Both depend on nothing but the content.
import { createHash } from 'node:crypto'

/** npm takes the name of the folder, which differs between checkouts. */
const productName = 'sluice'

/** A UUID that the same content always gets. */
function uuidOf(text) {
  const hex = createHash('sha256').update(text).digest('hex')
  const variant = ((Number.parseInt(hex[16], 16) & 3) | 8).toString(16)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-5${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

/**
 * @param {object} npmSbom the SBOM of the npm packages
 * @param {{ version: string, created: string }} release
 * @param {{ name: string, version: string, purl: string }[]} components what is contained besides npm packages
 * @param {string} subject the name of what the SBOM describes
 */
export function sbomOf(npmSbom, { version, created }, components, subject) {
  const own = npmSbom.metadata.component
  const content = {
    ...npmSbom,
    metadata: {
      ...npmSbom.metadata,
      timestamp: created,
      component: { ...own, name: productName, version, purl: `pkg:npm/${productName}@${version}` },
    },
    components: [
      ...npmSbom.components,
      ...components.map((one) => ({ type: 'library', 'bom-ref': one.purl, ...one })),
    ],
  }
  const { serialNumber: _random, ...rest } = content
  return { ...rest, serialNumber: `urn:uuid:${uuidOf(`${subject} ${JSON.stringify(rest)}`)}` }
}

function statement(subjects, predicateType, predicate) {
  return {
    _type: 'https://in-toto.io/Statement/v1',
    subject: subjects.map(({ name, digest }) => ({
      name,
      digest: { sha256: digest.replace('sha256:', '') },
    })),
    predicateType,
    predicate,
  }
}

export const sbomStatement = (sbom, subjects) =>
  statement(subjects, 'https://cyclonedx.org/bom', sbom)

/**
 * @param {{ version: string, revision: string, source: string, builder: string }} release
 * @param {{ name: string, digest: string }[]} subjects digests as `sha256:HEX`
 */
export function provenance({ version, revision, source, builder }, subjects) {
  return statement(subjects, 'https://slsa.dev/provenance/v1', {
    buildDefinition: {
      buildType: `${source}/blob/main/docs/operations/releases.md`,
      externalParameters: { version },
      resolvedDependencies: [
        { uri: `git+${source}@refs/tags/v${version}`, digest: { gitCommit: revision } },
      ],
    },
    runDetails: { builder: { id: builder } },
  })
}
