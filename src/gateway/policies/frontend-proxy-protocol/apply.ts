import { addressRanges } from '../../../ground/base/destination-rules.ts'
import {
  count,
  flag,
  type Infer,
  list,
  optional,
  record,
  text,
} from '../../../ground/base/shape.ts'
import type { PolicyApply } from '../define.ts'

/** The compiled form that proxies receive. */
const shape = record({ versions: list(count), isOptional: flag, from: optional(list(text)) })

const apply: PolicyApply<Infer<typeof shape>> = {
  shape,
  bind: ({ versions, isOptional, from }) => ({
    client: {
      proxyProtocol: {
        versions: versions.filter((version) => version === 1 || version === 2),
        isOptional,
        ...(from && { isSender: addressRanges(from) }),
      },
    },
  }),
}

export default apply
