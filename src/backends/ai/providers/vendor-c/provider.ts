/** vendorC: Anthropic. The messages format is its own. */
import { bearerToken, type Provider } from '../provider.ts'
import { unsupported } from '../unsupported.ts'

const messagesVersion = '2023-06-01'

const keyPrefix = 'sk-ant-'
/** Tokens of users, unlike keys of the API, stay bearer tokens. */
const userTokenPrefix = 'sk-ant-oat'

const provider: Provider = {
  keyPlaces: { header: 'x-api-key' },
  isOwnKey: (token) => token.startsWith(keyPrefix),
  systemName: 'anthropic',
  defaultHost: () => 'api.anthropic.com',
  plan(route) {
    switch (route) {
      case 'Messages':
        return { kind: 'native', path: '/v1/messages' }
      case 'VendorCTokenCount':
        return { kind: 'native', path: '/v1/messages/count_tokens' }
      case 'Embeddings':
        throw unsupported(route, 'anthropic')
      default:
        return { kind: 'translated', path: '/v1/messages', format: 'messages' }
    }
  },
  modelsPath: () => '/v1/models',
  adaptHeaders(headers) {
    const token = bearerToken(headers)
    if (token !== undefined && !token.startsWith(userTokenPrefix)) {
      headers.set('x-api-key', token)
      headers.remove('authorization')
    }
    headers.set('anthropic-version', messagesVersion)
    // With these the provider takes the call for one of a browser, and refuses it.
    for (const [name] of [...headers.entries()]) {
      const lower = name.toLowerCase()
      if (lower === 'origin' || lower.startsWith('access-control-request-')) headers.remove(name)
      else if (lower.startsWith('sec-fetch-')) headers.remove(name)
    }
  },
}

export default provider
