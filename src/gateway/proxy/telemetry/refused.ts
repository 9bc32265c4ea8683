/**
 * Returns whether the gateway refused a request that a backend could have got, by the status and the reason of its
 * response. Clients that leave are not refused.
 */
export const isRefused = (status: number, reason: string): boolean =>
  status >= 400 && status < 500 && reason !== 'Upstream' && reason !== 'ClientClosed'
