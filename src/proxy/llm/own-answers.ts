/** What the gateway itself tells clients of language models. */
import type { RespondVerdict } from '../../exchange/exchange.ts'
import type { JsonObject } from '../../llm/json.ts'
import type { LlmError } from '../../llm/llm-error.ts'
import type { Refusal } from '../../llm/policy/config.ts'
import type { RouteType } from '../../llm/policy/schema.ts'
import { writeErrorFor } from '../../llm/serve/errors.ts'

const json = ['content-type', 'application/json'] as const
const plain = ['content-type', 'text/plain'] as const

export function ownAnswer(status: number, body: JsonObject): RespondVerdict {
  const reason = 'DirectResponse'
  return { kind: 'respond', status, headers: [json], body: JSON.stringify(body), reason }
}

/** In the format of the client, so that its SDK can tell what is wrong. */
export function llmRefusal(route: RouteType, { status, message }: LlmError): RespondVerdict {
  const body = JSON.stringify(writeErrorFor(route, { status, message }))
  const reason = status < 500 ? 'InvalidRequest' : 'UpstreamFailure'
  return { kind: 'respond', status, headers: [json], body, reason }
}

/** In the words of whoever wrote the guard. */
export function guardRefusal({ status, message }: Refusal): RespondVerdict {
  return { kind: 'respond', status, headers: [plain], body: message, reason: 'Guardrail' }
}
