export const defaultClusterDomain = 'cluster.local'

/** The name of a Service in DNS: what its requests and its certificates are for. */
export function serviceHost(name: string, namespace: string, clusterDomain: string): string {
  return `${name}.${namespace}.svc.${clusterDomain}`
}
