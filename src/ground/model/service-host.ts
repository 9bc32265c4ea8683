export const defaultClusterDomain = 'cluster.local'

/** The DNS name of a Service; requests to it and its certificates use this name. */
export function serviceHost(name: string, namespace: string, clusterDomain: string): string {
  return `${name}.${namespace}.svc.${clusterDomain}`
}
