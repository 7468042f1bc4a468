"""Draws what device tensors hold with matplotlib: a line, a histogram, points, an image."""

import torch


def run(device: str, steps: int) -> list[float]:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    torch.manual_seed(0)
    drawn, means = [], []
    for _ in range(steps):
        values = torch.randn(200).to(device)
        means.append(values.mean())
        figure, (line, histogram, points, image) = plt.subplots(1, 4)
        (curve,) = line.plot(values)
        counts, edges, _ = histogram.hist(values, bins=8)
        dots = points.scatter(values, values.square())
        picture = image.imshow(values.view(10, 20))
        figure.canvas.draw()
        plt.close(figure)
        drawn += [curve.get_ydata()[0], *counts, edges[0]]
        drawn += [dots.get_offsets().sum(), picture.get_array().max()]
    figure, axes = plt.subplots()
    (curve,) = axes.plot(means)
    plt.close(figure)
    return [float(number) for number in (*drawn, *curve.get_ydata())]
