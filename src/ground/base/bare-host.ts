/** Removes the brackets around an IPv6 address. */
export function bareHost(host: string): string {
  return host.startsWith('[') ? host.replace(/^\[(.*)\]$/, '$1') : host
}
