/** The settings of the console, for the processes that have an event log. */
import { row } from './table.ts'
import { boolean, loopbackAddress, oneOf, path, text, texts, webUrl } from './types.ts'

export const consoleSettings = {
  consoleAddress: row(loopbackAddress, {
    flag: 'console-address',
    env: 'SLUICE_CONSOLE_ADDRESS',
    default: 'localhost:15004',
    doc: 'Loopback address of the web console. If the default is in use, another port is chosen.',
  }),
}

/** Who may use the console of a gateway or a controller, and for what. */
const accessSettings = {
  consoleActions: row(boolean, {
    flag: 'console-actions',
    env: 'SLUICE_CONSOLE_ACTIONS',
    default: false,
    doc: 'Whether people with the role `operate` may [act](console.md#actions) in the web console: approve tools and held changes, roll back and freeze the configuration, change dynamic keys and, in `sluice run`, send requests to the listeners.',
  }),
  consoleOidcIssuer: row(webUrl, {
    flag: 'console-oidc-issuer',
    env: 'SLUICE_CONSOLE_OIDC_ISSUER',
    doc: 'Issuer of the OpenID provider, for `--console-sign-in oidc`.',
  }),
  consoleOidcClient: row(text('a client id'), {
    flag: 'console-oidc-client',
    env: 'SLUICE_CONSOLE_OIDC_CLIENT',
    doc: 'Client id of the console at the provider.',
  }),
  consoleOidcSecretFile: row(path, {
    flag: 'console-oidc-secret-file',
    env: 'SLUICE_CONSOLE_OIDC_SECRET_FILE',
    doc: 'File with the secret of the client. If omitted, the client is public, and protected by PKCE alone.',
  }),
  consoleOidcScopes: row(texts, {
    flag: 'console-oidc-scopes',
    env: 'SLUICE_CONSOLE_OIDC_SCOPES',
    default: ['openid', 'profile', 'email'],
    defaultText: '`openid,profile,email`',
    doc: 'Scopes that are requested.',
  }),
  consoleOidcClaim: row(text('a name'), {
    flag: 'console-oidc-claim',
    env: 'SLUICE_CONSOLE_OIDC_CLAIM',
    default: 'groups',
    doc: 'Claim of the ID token, a text or a list of texts, that decides about roles.',
  }),
  consoleReaders: row(texts, {
    flag: 'console-readers',
    env: 'SLUICE_CONSOLE_READERS',
    default: ['read'],
    defaultText: '`read`',
    doc: 'Values of the claim that give the role `read`.',
  }),
  consoleOperators: row(texts, {
    flag: 'console-operators',
    env: 'SLUICE_CONSOLE_OPERATORS',
    default: ['operate'],
    defaultText: '`operate`',
    doc: 'Values of the claim that give the roles `read` and `operate`.',
  }),
}

/** Further settings of the console of a process that is a gateway. */
export const gatewayConsoleSettings = {
  ...consoleSettings,
  consoleSignIn: row(oneOf('token', 'oidc'), {
    flag: 'console-sign-in',
    env: 'SLUICE_CONSOLE_SIGN_IN',
    default: 'token',
    doc: 'How people sign in to the [console](console.md#access): with the URL that is printed (`token`), or at an OpenID provider (`oidc`).',
  }),
  ...accessSettings,
}

/** Further settings of the console of a controller. */
export const controllerConsoleSettings = {
  ...consoleSettings,
  consoleSignIn: row(oneOf('token', 'kubernetes', 'oidc'), {
    flag: 'console-sign-in',
    env: 'SLUICE_CONSOLE_SIGN_IN',
    default: 'token',
    doc: 'How people sign in to the [console](console.md#access): with the URL that it prints (`token`), at an OpenID provider (`oidc`), or, only for a controller, with a Kubernetes token and the RBAC verb `get` for `consoles.sluice.dev` (`kubernetes`).',
  }),
  ...accessSettings,
}
