/** The GatewayClass that the controller brings along; made again where somebody deletes it. */
import { controllerName, defaultClassName, gatewayGroup, ownGroup } from '../api/names.ts'
import {
  type KubeClient,
  KubeError,
  type OwnerReference,
  objectPath,
  ownedBy,
} from '../kube/index.ts'

interface ClassParametersRef {
  readonly group?: string
  readonly kind?: string
  readonly namespace: string
  readonly name: string
}

/** Which class, and how often its spec was changed. */
export interface ClassVersion {
  readonly uid: string
  readonly generation: number
}

/**
 * Makes the default class, or brings its parameters up to date. Resolves with the version that has
 * them; undefined where a class of this name belongs to another controller and is left alone.
 * @throws KubeError where the API server refuses it, 404 where the kind is not installed
 */
export async function ensureDefaultClass(
  client: KubeClient,
  parameters: ClassParametersRef | undefined,
  installation?: OwnerReference,
): Promise<ClassVersion | undefined> {
  const kind = { group: gatewayGroup, version: 'v1', plural: 'gatewayclasses' }
  const path = objectPath(kind, '', defaultClassName)
  const owner = await ownerOf(client, path)
  if (owner !== undefined && owner !== controllerName) return undefined
  const {
    group = ownGroup,
    kind: parametersKind = 'GatewayParameters',
    ...place
  } = parameters ?? {}
  const { metadata } = await client.apply(path, {
    apiVersion: `${gatewayGroup}/v1`,
    kind: 'GatewayClass',
    metadata: { name: defaultClassName, ...ownedBy(installation) },
    spec: {
      controllerName,
      ...(parameters && { parametersRef: { group, kind: parametersKind, ...place } }),
    },
  })
  return { uid: metadata?.uid ?? '', generation: metadata?.generation ?? 0 }
}

async function ownerOf(client: KubeClient, path: string): Promise<string | undefined> {
  try {
    const { spec } = await client.get(path)
    return (spec as { controllerName?: string } | undefined)?.controllerName
  } catch (error) {
    if (error instanceof KubeError && error.isNotFound) return undefined
    throw error
  }
}
