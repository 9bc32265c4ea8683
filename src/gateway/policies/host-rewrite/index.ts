import { choice, object, required } from '../../../ground/schema/field.ts'
import { definePolicy } from '../define.ts'

/** Decides whether the backend receives the client's Host header or the destination's host. */
export const hostRewrite = definePolicy({
  section: 'traffic',
  field: 'hostRewrite',
  schema: object('HostnameRewrite', {
    mode: required(
      choice('HostnameRewriteMode', {
        Auto: 'the Host header is set from the destination',
        None: "the client's Host header is passed on",
      }),
      'Source of the Host header.',
    ),
  }),
  doc: 'Decides which Host the backend gets. Default: Auto for backends with a host name, None for Services and addresses. Ignored if a urlRewrite filter sets the host.',
  security: false,
  changesRequest: false,
  endsRequest: false,
  compile: ({ mode }) => ({ config: { mode }, problems: [] }),
  apply: () => import('./apply.ts'),
})
