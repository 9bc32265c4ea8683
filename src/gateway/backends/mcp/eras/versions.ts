/**
 * Protocol revisions. The two eras differ in where a request carries its version:
 *
 *   legacy   up to 2025-11-25: `initialize` agrees on a version, and requests belong to a session
 *   modern   from 2026-07-28: every request names its version and the client's capabilities in `_meta`
 */

/** Supported legacy versions. They are dates, so comparing them as text finds the older one. */
export const legacyVersions = ['2024-10-07', '2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']
export const latestLegacyVersion = '2025-11-25'
/** The version of a legacy request without an `mcp-protocol-version` header (streamable HTTP). */
export const assumedVersion = '2025-03-26'

export const modernVersion = '2026-07-28'
/** Supported modern versions. */
export const modernVersions: readonly string[] = [modernVersion]

/** All supported versions, the newest first, as errors list them. */
export const supportedVersions = [...modernVersions, ...[...legacyVersions].reverse()]

/** Whether the text is a version of the modern era, known or not. */
export const isModern = (version: string): boolean =>
  /^\d{4}-\d{2}-\d{2}$/.test(version) && version >= modernVersion

/** Returns the requested version, or the latest legacy version if the requested one is unknown. */
export const versionFor = (asked: string | undefined): string =>
  asked !== undefined && legacyVersions.includes(asked) ? asked : latestLegacyVersion

/** Whether the version allows JSON-RPC batches. Only 2025-03-26 does. */
export const hasBatches = (version: string): boolean => version === '2025-03-26'
