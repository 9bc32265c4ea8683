/** Plans of requests that are in no format of the provider. */
import { operationOf, type ReadRouteType } from '../../../../engines/messages/formats/index.ts'
import { unsupportedRoute } from '../../../../engines/messages/llm-error.ts'
import type { Plan } from '../../../../engines/messages/plan.ts'

interface Targets {
  /** What conversations are translated to; undefined if the provider has none. */
  readonly chat: Plan | undefined
  /** Path of embeddings in vendor A's format. */
  readonly embeddings?: string | undefined
}

/** @throws LlmError 400 if the provider has no counterpart */
export function foreignPlan(
  route: ReadRouteType,
  systemName: string,
  { chat, embeddings }: Targets,
): Plan {
  const operation = operationOf(route)
  if (operation === 'count_tokens') return { kind: 'local-count' }
  if (operation === 'chat' && chat !== undefined) return chat
  if (operation === 'embeddings' && embeddings !== undefined) {
    return { kind: 'embeddings', path: embeddings, format: 'vectors' }
  }
  throw unsupportedRoute(route, systemName)
}
