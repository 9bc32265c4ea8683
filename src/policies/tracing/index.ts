import { definePolicy } from '../define.ts'
import { compile } from './compile.ts'
import { tracingField } from './schema.ts'

/** Sends spans of requests to an OpenTelemetry collector. */
export const tracing = definePolicy(tracingField, {
  security: false,
  preRouting: false,
  merge: 'replace',
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
