/** Formats of requests by the names that users write in `routes`. */

/** Route types whose requests the gateway reads. */
export type ReadRouteType =
  | 'Completions'
  | 'Messages'
  | 'Responses'
  | 'VendorCTokenCount'
  | 'Embeddings'

export const routeTypes = [
  'Completions',
  'Messages',
  'Models',
  'Passthrough',
  'Responses',
  'VendorCTokenCount',
  'Embeddings',
  'Realtime',
] as const
export type RouteType = (typeof routeTypes)[number]
