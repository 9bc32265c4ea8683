import type { SigningScope } from './signature.ts'

/** Services whose host is named otherwise than they sign. */
const signingNames: Readonly<Record<string, string>> = {
  'bedrock-runtime': 'bedrock',
  'bedrock-agent': 'bedrock',
  'bedrock-agent-runtime': 'bedrock',
  'runtime.sagemaker': 'sagemaker',
  email: 'ses',
  'lambda-url': 'lambda',
  aoss: 'aoss',
}

const defaultRegion = 'us-east-1'
const region = /^[a-z]{2}(?:-[a-z]+)+-\d$/

/**
 * The region and service that a host of AWS signs by: `service.region.amazonaws.com`, with whatever
 * in front, or `name.region.service.amazonaws.com`. For any other host (a private endpoint, a mock)
 * the given region and `execute-api`, by which services of one's own are called.
 */
export function scopeOfHost(authority: string, fallbackRegion = defaultRegion): SigningScope {
  const host = authority.replace(/:\d+$/, '').toLowerCase()
  const name = /^(.+)\.(?:amazonaws\.com(?:\.cn)?|api\.aws|on\.aws)$/.exec(host)?.[1]
  if (name === undefined) return { region: fallbackRegion, service: 'execute-api' }
  const labels = name.split('.').filter((label) => label !== 'dualstack' && label !== 'vpce')
  const at = labels.findLastIndex((label) => region.test(label))
  const found = labels[at]
  // A global service, such as iam.amazonaws.com.
  if (found === undefined) return { region: defaultRegion, service: signingName(labels) }
  const behind = labels.slice(at + 1)
  return { region: found, service: signingName(behind.length > 0 ? behind : labels.slice(0, at)) }
}

/** The last label is the service, or the last two where they are known together. */
function signingName(labels: readonly string[]): string {
  const last = labels.at(-1) ?? ''
  const two = labels.slice(-2).join('.')
  const name = (signingNames[two] ?? signingNames[last] ?? last).replace(/-fips$/, '')
  return signingNames[name] ?? name
}
