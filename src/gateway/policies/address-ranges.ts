import { isAddressRange } from '../../ground/base/ip-address.ts'
import type { PolicyProblem } from './define.ts'

/** Returns a problem for each text of a list that is neither an address nor a CIDR. */
export function rangeProblems(field: string, ranges: readonly string[] = []): PolicyProblem[] {
  return ranges.flatMap((range, at) =>
    isAddressRange(range)
      ? []
      : [{ path: `${field}[${at}]`, message: `${range} is not an IP address or a CIDR` }],
  )
}
