/** The source formats, one line each. */
import { agentgateway } from './agentgateway/index.ts'
import { envoyGateway } from './envoy-gateway/index.ts'
import type { SourceDocument } from './field.ts'
import { istio } from './istio/index.ts'
import { kong } from './kong/index.ts'
import { litellm } from './litellm/index.ts'
import { nginxIngress } from './nginx-ingress/index.ts'
import { portkey } from './portkey/index.ts'
import type { ImportSource } from './source.ts'
import { traefik } from './traefik/index.ts'

export const sources: readonly ImportSource[] = [
  agentgateway,
  envoyGateway,
  istio,
  kong,
  litellm,
  nginxIngress,
  portkey,
  traefik,
]

/** The sources that some of the documents can only belong to. */
export function detectSources(documents: readonly SourceDocument[]): ImportSource[] {
  return sources.filter((source) => documents.some((document) => source.detects(document)))
}
