import type { References } from '../../model/references.ts'
import { type Infer, object, required } from '../../schema/field.ts'
import { sectionField } from '../../schema/section-field.ts'
import { backendObjectReference } from '../../schema/shapes/references.ts'
import { type Compiled, definePolicy } from '../define.ts'
import type { ExtProcConfig } from './apply.ts'

const extProcSchema = object('ExtProc', {
  backendRef: required(backendObjectReference, 'Service or GatewayBackend that processes.'),
})
type ExtProcSpec = Infer<typeof extProcSchema>

const extProcField = sectionField({
  section: 'traffic',
  field: 'extProc',
  schema: extProcSchema,
  doc: 'Lets an external processor change headers and bodies of requests and responses.',
})

/** A processor that cannot be reached closes what the policy covers. */
function compile({ backendRef }: ExtProcSpec, references: References): Compiled<ExtProcConfig> {
  const target = references.backend(backendRef)
  if (typeof target === 'string' || target.type === 'invalid') {
    const message = typeof target === 'string' ? target : target.message
    return { problems: [{ path: 'backendRef', message }] }
  }
  return { config: { target }, problems: [] }
}

/** Has requests and responses processed elsewhere. */
export const extProc = definePolicy(extProcField, {
  security: true,
  preRouting: true,
  merge: 'replace',
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
