import { choice, type Infer, object, required } from '../../schema/field.ts'
import { sectionField } from '../../schema/section-field.ts'
import { type Compiled, definePolicy } from '../define.ts'
import type { HostRewriteConfig } from './apply.ts'

const hostRewriteSchema = object('HostnameRewrite', {
  mode: required(
    choice('HostnameRewriteMode', {
      Auto: 'the Host header is set from the destination',
      None: "the client's Host header is passed on",
    }),
    'Where the Host header comes from.',
  ),
})
type HostRewriteSpec = Infer<typeof hostRewriteSchema>

const hostRewriteField = sectionField({
  section: 'traffic',
  field: 'hostRewrite',
  schema: hostRewriteSchema,
  doc: 'Decides which Host the backend sees. Default: Auto for backends with a host name, None for Services and addresses; ignored where a urlRewrite filter sets the host.',
})

/** `traffic.hostRewrite`: the compiled form is what the user wrote. */
function compile({ mode }: HostRewriteSpec): Compiled<HostRewriteConfig> {
  return { config: { mode }, problems: [] }
}

/** Decides whether the upstream sees the client's Host or the destination's. */
export const hostRewrite = definePolicy(hostRewriteField, {
  security: false,
  preRouting: false,
  merge: 'replace',
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
