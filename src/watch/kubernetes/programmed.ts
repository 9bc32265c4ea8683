/** What a status in the cluster still says of proxies that a log may know nothing of. */
import type { WasProgrammed } from '../../../events/index.ts'
import type { LiveObject } from '../../kube/index.ts'

interface Condition {
  readonly type: string
  readonly status: string
  readonly observedGeneration?: number
}

interface ListenedStatus {
  readonly addresses?: readonly { readonly value?: string }[]
  readonly conditions?: readonly Condition[]
  readonly listeners?: readonly { readonly conditions?: readonly Condition[] }[]
}

const kinds = new Set(['Gateway', 'ListenerSet'])

/**
 * That the status of a Gateway or ListenerSet calls its generation programmed, and at which addresses;
 * undefined where it speaks of another generation or says anything else, and where a proxy has
 * refused a listener of it.
 */
export function wasProgrammed(live: LiveObject | undefined): WasProgrammed | undefined {
  if (live === undefined || !kinds.has(live.kind)) return undefined
  const { addresses = [], conditions = [], listeners = [] } = (live.status ?? {}) as ListenedStatus
  const own = conditions.find(({ type }) => type === 'Programmed')
  if (own?.status !== 'True' || own.observedGeneration !== live.generation) return undefined
  if (listeners.some((one) => isRefused(one.conditions ?? []))) return undefined
  return { generation: live.generation, addresses: addresses.flatMap(({ value }) => value ?? []) }
}

/** Nothing is wrong with what the listener asks for, and it is not programmed all the same. */
function isRefused(conditions: readonly Condition[]): boolean {
  const statusOf = (type: string) => conditions.find((one) => one.type === type)?.status
  return (
    statusOf('Programmed') === 'False' &&
    statusOf('Accepted') === 'True' &&
    statusOf('ResolvedRefs') === 'True' &&
    statusOf('Conflicted') !== 'True'
  )
}
