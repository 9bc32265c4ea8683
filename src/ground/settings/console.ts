/** The settings of the console, for the processes that have an event log. */
import { row } from './table.ts'
import { boolean, loopbackAddress, oneOf } from './types.ts'

export const consoleSettings = {
  consoleAddress: row(loopbackAddress, {
    flag: 'console-address',
    env: 'SLUICE_CONSOLE_ADDRESS',
    default: 'localhost:15004',
    doc: 'Loopback address of the web console. If the default is in use, another port is chosen.',
  }),
}

/** Further settings of the console of a process that is a gateway. */
export const gatewayConsoleSettings = {
  ...consoleSettings,
  consoleActions: row(boolean, {
    flag: 'console-actions',
    env: 'SLUICE_CONSOLE_ACTIONS',
    default: false,
    doc: 'Whether pages of the web console may send requests to the listeners of this gateway: chats with models and calls of tools. Only in `sluice run` and commands that are based on it.',
  }),
}

/** Further settings of the console of a controller. */
export const controllerConsoleSettings = {
  ...consoleSettings,
  consoleSignIn: row(oneOf('token', 'kubernetes'), {
    flag: 'console-sign-in',
    env: 'SLUICE_CONSOLE_SIGN_IN',
    default: 'token',
    doc: 'How people sign in to the [console](console.md#sign-in-with-kubernetes-tokens) of a controller: with the URL that it prints (`token`), or with a Kubernetes token and the RBAC verb `get` for `consoles.sluice.dev` (`kubernetes`).',
  }),
}
