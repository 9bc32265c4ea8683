/** The command `npm run ledger-simulation`. */
// The first import: it replaces the clocks before any other module reads them.
import '../virtual-time/globals.ts'
import { commandOf } from '../virtual-time/command.ts'
import { type Outcome, simulate } from './simulation.ts'

export const command = commandOf<Outcome>({
  script: 'ledger-simulation',
  defaultSeeds: '1..10',
  defaultMinutes: 5,
  simulate,
  counts: {
    'virtual hours': ({ virtualMs }) => virtualMs / 3_600_000,
    'requests admitted': ({ admitted }) => admitted,
    refused: ({ refused }) => refused,
    'holders released': ({ released }) => released,
  },
})
