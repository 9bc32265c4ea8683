import { type Infer, object, required } from '../../schema/field.ts'
import { sectionField } from '../../schema/section-field.ts'
import { backendObjectReference } from '../../schema/shapes/references.ts'

const extProc = object('ExtProc', {
  backendRef: required(backendObjectReference, 'Service or GatewayBackend that processes.'),
})
export type ExtProcSpec = Infer<typeof extProc>

export const extProcField = sectionField({
  section: 'traffic',
  field: 'extProc',
  schema: extProc,
  doc: 'Lets an external processor change headers and bodies of requests and responses.',
})
