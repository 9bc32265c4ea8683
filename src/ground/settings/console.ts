/** The settings of the console, for the processes that have an event log. */
import { row } from './table.ts'
import { loopbackAddress } from './types.ts'

export const consoleSettings = {
  consoleAddress: row(loopbackAddress, {
    flag: 'console-address',
    env: 'SLUICE_CONSOLE_ADDRESS',
    default: 'localhost:15004',
    doc: 'Loopback address of the web console. If the default is in use, another port is chosen.',
  }),
}
