/** Checks the CustomResourceDefinitions of a cluster against those that this version reads. */
import { isDeepStrictEqual } from 'node:util'
import { crds } from '../../../control/api/crds.ts'
import { kinds } from '../../../control/api/kinds.ts'
import {
  collectionPath,
  type KubeClient,
  type KubeList,
  type KubeObject,
} from '../../../control/kube/index.ts'
import {
  agenticGroup,
  gatewayGroup,
  inferenceGroup,
  ownGroup,
} from '../../../ground/model/api-names.ts'
import { type Check, errorAbout, type Finding, warningAbout } from './finding.ts'

const definedGroups: ReadonlySet<string> = new Set([
  ownGroup,
  gatewayGroup,
  inferenceGroup,
  agenticGroup,
])

/** Kinds that CustomResourceDefinitions add to a cluster. */
export const definitionRows = kinds.filter(({ group }) => definedGroups.has(group))

interface Version {
  readonly name: string
  readonly served: boolean
  readonly schema?: unknown
}

const versionsOf = (definition: KubeObject | undefined): readonly Version[] =>
  ((definition?.spec as { versions?: readonly Version[] } | undefined)?.versions ?? []).filter(
    ({ served }) => served,
  )

function adviceFor(group: string, versions: readonly string[]): string {
  if (group === ownGroup) {
    return 'install the chart sluice-crds of this version (or `sluice crds | kubectl apply --server-side -f -`)'
  }
  return group === gatewayGroup
    ? 'install the standard channel of the Gateway API'
    : `install a release of its project that serves ${versions.join(' or ')}`
}

export async function checkDefinitions(client: KubeClient): Promise<Omit<Check, 'name'>> {
  const place = {
    group: 'apiextensions.k8s.io',
    version: 'v1',
    plural: 'customresourcedefinitions',
  }
  const { items } = await client.get<KubeList>(collectionPath(place))
  const known = new Map((items ?? []).map((one) => [one.metadata.name, one]))
  const shipped = new Map((crds() as readonly KubeObject[]).map((one) => [one.metadata.name, one]))
  const findings = definitionRows.flatMap(({ plural, group, versions }): Finding[] => {
    const name = `${plural}.${group}`
    const subject = `CustomResourceDefinition ${name}`
    const isOwn = group === ownGroup
    const advice = adviceFor(group, versions)
    const found = versionsOf(known.get(name))
    if (found.length === 0) {
      // The definitions of other projects are optional.
      if (!isOwn && group !== gatewayGroup) return []
      return [(isOwn ? errorAbout : warningAbout)(subject, 'it is not installed', advice)]
    }
    const served = found.find((one) => versions.some((version) => version === one.name))
    if (served === undefined) {
      const text = `it serves ${found.map((one) => one.name).join(', ')}, but not ${versions.join(', ')}`
      return [errorAbout(subject, text, advice)]
    }
    const own = versionsOf(shipped.get(name)).find((one) => one.name === served.name)
    if (own === undefined || isDeepStrictEqual(own.schema, served.schema)) return []
    const text =
      'its schema is that of another version: fields may be refused, or dropped without notice'
    return [warningAbout(subject, text, advice)]
  })
  return { findings }
}
