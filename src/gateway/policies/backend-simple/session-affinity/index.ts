import { object, required } from '../../../../ground/schema/field.ts'
import { celExpression } from '../../../../ground/schema/strings.ts'
import { definePolicy } from '../../define.ts'

const schema = object('BackendSessionAffinity', {
  source: required(
    celExpression,
    'Expression whose value identifies the session, such as request.headers["x-session-id"]. If it fails, or its value is empty or not a string, an endpoint is chosen as usual.',
  ),
})

/** Sends requests with the same value of an expression to the same endpoint. */
export const backendSessionAffinity = definePolicy({
  section: 'backend',
  field: 'sessionAffinity',
  schema,
  doc: 'Sends requests of a session to the same endpoint of a Service or static backend, in all proxies, while it can be used.',
  security: false,
  expressions: [{ path: 'source', point: 'endpoint' }],
  compile: ({ source }) => ({ config: { source }, problems: [] }),
  apply: () => import('./apply.ts'),
})
