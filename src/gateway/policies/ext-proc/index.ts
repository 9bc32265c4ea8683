import { calledBackend } from '../../../ground/model/references.ts'
import { object, required } from '../../../ground/schema/field.ts'
import { backendObjectReference } from '../../../ground/schema/shapes/references.ts'
import { definePolicy } from '../define.ts'

/**
 * Sends requests and responses to an external processor. If the processor cannot be resolved, all
 * requests that the policy applies to are rejected.
 */
export const extProc = definePolicy({
  section: 'traffic',
  field: 'extProc',
  schema: object('ExtProc', {
    backendRef: required(backendObjectReference, 'Service or GatewayBackend that processes.'),
  }),
  doc: 'Lets an external processor change headers and bodies of requests and responses.',
  security: true,
  conditional: 'always one',
  preRouting: true,
  seesAllHeaders: true,
  compile({ backendRef }, references) {
    const target = calledBackend(references, backendRef)
    if (typeof target === 'string') return { problems: [{ path: 'backendRef', message: target }] }
    return { config: { target }, problems: [] }
  },
  apply: () => import('./apply.ts'),
})
