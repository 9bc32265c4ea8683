import { choice, type Infer, object, required } from '../../schema/field.ts'
import { sectionField } from '../../schema/section-field.ts'

const hostRewrite = object('HostnameRewrite', {
  mode: required(
    choice('HostnameRewriteMode', {
      Auto: 'the Host header is set from the destination',
      None: "the client's Host header is passed on",
    }),
    'Where the Host header comes from.',
  ),
})
export type HostRewriteSpec = Infer<typeof hostRewrite>

export const hostRewriteField = sectionField({
  section: 'traffic',
  field: 'hostRewrite',
  schema: hostRewrite,
  doc: 'Decides which Host the backend sees. Default: Auto for backends with a host name, None for Services and addresses; ignored where a urlRewrite filter sets the host.',
})
