import { addressRanges } from '../../../ground/base/destination-rules.ts'
import {
  choice,
  type Infer,
  integer,
  list,
  optional,
  record,
  text,
} from '../../../ground/base/shape.ts'
import type { PolicyApply } from '../define.ts'

/** The compiled form that proxies receive. */
const shape = record({
  headers: choice('Keep', 'Append', 'Replace'),
  trustedProxies: optional(list(text)),
  trustedHops: optional(integer(1, 32)),
})

const apply: PolicyApply<Infer<typeof shape>> = {
  shape,
  bind: ({ headers, trustedProxies, trustedHops }) => ({
    client: {
      forwarded: {
        headers,
        trustedHops,
        ...(trustedProxies && { isTrusted: addressRanges(trustedProxies) }),
      },
    },
  }),
}

export default apply
