/** Converts the annotations for passwords and for external authorization. */
import { entryOf } from '../../../ground/base/json-object.ts'
import { type Conversion, compact, filled } from '../conversion.ts'
import { addSecret, addStatic, parseAddress, quote } from '../targets.ts'
import { type AnnotationScene, listOf, type Read } from './scene.ts'

export function addAuthentication(read: Read, scene: AnnotationScene): void {
  addPasswords(read, scene)
  addExternal(read, scene)
}

function addPasswords(read: Read, { plan, result, name }: AnnotationScene): void {
  const type = read('auth-type')
  const secret = read('auth-secret')
  if (!type.isSet) return
  if (type.text() !== 'basic' || !secret.isSet) {
    type.report('protection', 'only basic authentication with a Secret is converted')
    return
  }
  const isMap = read('auth-secret-type').text() === 'auth-map'
  const htpasswd = htpasswdOf(secret.text() ?? '', isMap, result)
  const secretName = result.nameOf('Secret', `${name}-htpasswd`)
  const reason =
    htpasswd === undefined
      ? `Secret ${secretName} is empty, so that everyone is refused: copy the users of ${secret.text()} to ".htaccess"`
      : `the users of ${secret.text()} are now in Secret ${secretName}`
  secret.report('secret', reason)
  const entries: Record<string, string> = htpasswd === undefined ? {} : { '.htaccess': htpasswd }
  const secretRef = addSecret(result, secretName, entries, secret)
  plan.traffic.basicAuthentication = compact({ realm: read('auth-realm').text(), secretRef })
}

/** The htpasswd lines of a Secret among the files. */
function htpasswdOf(reference: string, isMap: boolean, result: Conversion): string | undefined {
  const [name = '', namespace] = reference.split('/').reverse()
  const entries = result.secretEntries(name, namespace ?? result.namespace)
  if (entries === undefined) return undefined
  if (!isMap) return entries.auth
  return Object.entries(entries)
    .map(([user, hash]) => `${user}:${hash.trim()}`)
    .join('\n')
}

/** Variables of nginx that annotations may use, as expressions. */
const variables: Readonly<Record<string, string>> = {
  $escaped_request_uri: 'url.encode(request.pathAndQuery)',
  $host: 'request.host',
  $http_host: 'request.host',
  $request_uri: 'request.pathAndQuery',
  $scheme: 'request.scheme',
}

/** An expression for a text with variables; undefined if one of them is unknown. */
function expressionOf(text: string): string | undefined {
  const parts = text.split(/(\$\w+)/).filter((part) => part !== '')
  const expressions = parts.map((part) =>
    part.startsWith('$') ? entryOf(variables, part) : quote(part),
  )
  return expressions.includes(undefined) ? undefined : expressions.join(' + ')
}

function addExternal(read: Read, { plan, result }: AnnotationScene): void {
  const url = read('auth-url')
  const text = url.text()
  if (text === undefined) return
  const [, origin = '', path = ''] = /^(https?:\/\/[^/$]+)(.*)$/i.exec(text) ?? []
  const address = parseAddress(origin)
  const pathExpression = expressionOf(path === '' ? '/' : path)
  if (address === undefined || pathExpression === undefined) {
    url.report('protection', 'is not a URL with a constant host and known variables')
    plan.authorization.push({ action: 'Require', expressions: ['false'] })
    return
  }
  const signIn = read('auth-signin')
  const redirect = signIn.isSet ? expressionOf(signIn.text() ?? '') : undefined
  if (signIn.isSet && redirect === undefined) signIn.lose('has an unknown variable')
  read('auth-signin-redirect-param').take()
  for (const name of [
    'auth-method',
    'auth-proxy-set-headers',
    'auth-cache-key',
    'auth-cache-duration',
  ]) {
    read(name).lose('the service is asked as described in the guide', 'lost')
  }
  read('auth-keepalive').take()
  const responseHeaders = listOf(read('auth-response-headers').text() ?? '')
  url.report('changed', 'only the answer 200 allows a request; nginx accepts every 2xx')
  plan.traffic.extAuth = {
    backendRef: addStatic(result, address, url),
    http: compact({
      path: pathExpression,
      redirect,
      allowedRequestHeaders: ['cookie', 'user-agent', 'x-requested-with'],
      addRequestHeaders: {
        'x-original-url': 'request.scheme + "://" + request.host + request.pathAndQuery',
        'x-original-method': 'request.method',
        'x-auth-request-redirect': 'request.pathAndQuery',
      },
      allowedResponseHeaders: filled(responseHeaders),
    }),
  }
}
