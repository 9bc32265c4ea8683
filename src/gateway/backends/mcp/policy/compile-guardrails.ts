/** Compiles the services that check MCP messages. */
import { calledBackend, type References } from '../../../../ground/model/references.ts'
import type { PolicyProblem } from '../../../policies/define.ts'
import { lowerNames } from '../../../policies/ext-auth/names.ts'
import type { ProcessorConfig } from './calls-config.ts'
import type { GuardrailsSpec } from './guardrails-schema.ts'

/** A method, or a pattern with one `*`. */
const methodPattern = /^(?:\*|[\w$/-]+\*?|\*[\w$/-]+|[\w$/-]+\*[\w$/-]+)$/

/** Reports a service that cannot be resolved, so that the policy closes its backend. */
export function compileGuardrails(
  { processors }: GuardrailsSpec,
  references: References,
  problems: PolicyProblem[],
): readonly ProcessorConfig[] {
  return processors.flatMap(({ remote, methods }, at) => {
    const path = `guardrails.processors[${at}]`
    for (const method of Object.keys(methods)) {
      if (methodPattern.test(method)) continue
      const message = 'is neither a method nor a pattern with one *'
      problems.push({ path: `${path}.methods.${method}`, message })
    }
    const { backendRef, failureMode, metadata = {} } = remote
    const target = calledBackend(references, backendRef)
    if (typeof target === 'string') {
      problems.push({ path: `${path}.remote.backendRef`, message: target })
      return []
    }
    return {
      target,
      failsOpen: failureMode === 'FailOpen',
      metadata,
      methods,
      disallowed: lowerNames(remote.disallowedRequestHeaders),
      ...(remote.allowedRequestHeaders && { allowed: lowerNames(remote.allowedRequestHeaders) }),
    }
  })
}
