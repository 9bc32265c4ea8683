/** What the log needs to know of a Pod: most of it, and most of its changes, concerns nobody here. */
import type { PodFacts } from '../../events/index.ts'
import { isObject, type JsonObject } from '../base/json-object.ts'

/** A Pod as it is recorded: name, labels, age, and the facts. */
export function recordPod({ apiVersion, kind, metadata, status }: JsonObject): JsonObject {
  const { name, namespace, labels, creationTimestamp, deletionTimestamp } = (metadata ??
    {}) as JsonObject
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      namespace,
      ...(labels !== undefined && { labels }),
      ...(creationTimestamp !== undefined && { creationTimestamp }),
    },
    facts: factsOf(isObject(status) ? status : {}, deletionTimestamp !== undefined),
  }
}

function factsOf({ phase, podIP, conditions }: JsonObject, isLeaving: boolean): PodFacts {
  const isReady =
    Array.isArray(conditions) &&
    conditions.some((one) => isObject(one) && one.type === 'Ready' && one.status === 'True')
  const isOver = isLeaving || phase === 'Succeeded' || phase === 'Failed'
  const address = typeof podIP === 'string' && podIP !== '' ? { address: podIP } : {}
  return { ...address, ready: isReady && !isOver }
}
