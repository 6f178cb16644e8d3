/** Name of the source: `demand` of a queue, and a key of `sources` in the settings. */
export const interlinkSource = 'interlink';
