/** Names of listeners. */

/** The HTTPS listener of a host. */
export const listenerOf = (host: string): string =>
  `https-${host.replaceAll('*', 'any').replaceAll('.', '-')}`.slice(0, 63)
