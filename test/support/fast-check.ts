/**
 * fast-check with the same random values in every run, so that `npm test` passes or fails for everybody. The command
 * `npm run test:properties` draws new values.
 */
import fc from 'fast-check'

const { SLUICE_TEST_SEED: seed = '1' } = process.env
if (seed !== 'random') fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(seed) })

export default fc
