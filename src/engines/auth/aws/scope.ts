import type { SigningScope } from '../../../ground/exchange/forwarding.ts'

/** Signing names by host name, for services whose two names differ. */
const signingNames: Readonly<Record<string, string>> = {
  'bedrock-runtime': 'bedrock',
  'bedrock-agent': 'bedrock',
  'bedrock-agent-runtime': 'bedrock',
  'runtime.sagemaker': 'sagemaker',
  email: 'ses',
  'lambda-url': 'lambda',
}

const defaultRegion = 'us-east-1'
const region = /^[a-z]{2}(?:-[a-z]+)+-\d$/

/**
 * Returns the signing region and service of an AWS host: `service.region.amazonaws.com` with any prefix,
 * or `name.region.service.amazonaws.com`. For any other host, such as a private endpoint, returns the
 * fallback region and the service `execute-api`.
 */
export function scopeOfHost(authority: string, fallbackRegion = defaultRegion): SigningScope {
  const host = authority.replace(/:\d+$/, '').toLowerCase()
  const name = /^(.+)\.(?:amazonaws\.com(?:\.cn)?|api\.aws|on\.aws)$/.exec(host)?.[1]
  if (name === undefined) return { region: fallbackRegion, service: 'execute-api' }
  const labels = name.split('.').filter((label) => label !== 'dualstack' && label !== 'vpce')
  const at = labels.findLastIndex((label) => region.test(label))
  const foundRegion = labels[at]
  // Hosts of global services, such as iam.amazonaws.com, have no region.
  if (foundRegion === undefined) return { region: defaultRegion, service: signingName(labels) }
  const afterRegion = labels.slice(at + 1)
  return {
    region: foundRegion,
    service: signingName(afterRegion.length > 0 ? afterRegion : labels.slice(0, at)),
  }
}

/** The service is the last label, or the last two labels if they are a known pair. */
function signingName(labels: readonly string[]): string {
  const last = labels.at(-1) ?? ''
  const two = labels.slice(-2).join('.')
  const name = (signingNames[two] ?? signingNames[last] ?? last).replace(/-fips$/, '')
  return signingNames[name] ?? name
}
