/** Selects the endpoints that requests may use, by the conditions of EndpointSlices and Pods. */

interface EndpointState {
  readonly ready: boolean
  readonly serving?: boolean
}

/**
 * Returns the ready candidates, or all that do not terminate if `publishNotReady`. If there are none, returns the
 * terminating ones that still serve, as kube-proxy does (KEP-1669).
 */
export function usableEndpoints<Candidate extends EndpointState>(
  candidates: readonly Candidate[],
  publishNotReady = false,
): readonly Candidate[] {
  const usable = candidates.filter(
    ({ ready, serving }) => ready || (publishNotReady && serving !== true),
  )
  return usable.length > 0 ? usable : candidates.filter(({ serving }) => serving === true)
}
